"""The library on LanceDB: tables, embedding spaces and search. Knows no video codec."""
